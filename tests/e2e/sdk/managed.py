"""Uses the management API by Google's own SDK; only base URL and key are changed."""

import sys

from google import genai

base_url, key = sys.argv[1:]
client = genai.Client(api_key=key, http_options={"base_url": base_url})


def refused(status, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        code = getattr(error, "status_code", None) or getattr(error, "code", None)
        assert code == status, f"{code} in place of {status}: {type(error)} {error}"
        assert "genai" in type(error).__module__, type(error)
        return
    raise AssertionError(f"{status} was due")


credentials = client.credentials
made = credentials.create(id="token", type="bearer_token", token="secret-value")
assert (made.id, made.type, made.status) == ("token", "bearer_token", "active"), made
credentials.create(
    id="variable",
    type="environment_variable",
    value="secret-value",
    injection_location=["header", "query"],
    trusted_domains=["api.example.com"],
)
credentials.create(
    id="oauth",
    type="oauth2",
    client_id="c",
    client_secret="secret-value",
    refresh_token="secret-value",
    token_url="https://auth.example.com/token",
    scopes=["a"],
)
got = credentials.get("token")
assert got.create_time == made.create_time, got
updated = credentials.update("token", type="bearer_token", token="other", update_mask="token")
assert updated.update_time >= made.update_time, updated
first = credentials.list(page_size=2)
assert [one.id for one in first.credentials] == ["oauth", "token"], first
rest = credentials.list(page_size=2, page_token=first.next_page_token)
assert [one.id for one in rest.credentials] == ["variable"], rest
assert not rest.next_page_token, rest
refused(409, credentials.create, id="token", type="bearer_token", token="x")
refused(400, credentials.create, id="bad", type="bearer_token", token="x\n")
refused(404, credentials.get, "absent")
credentials.delete("token")
refused(404, credentials.delete, "token")

environments = client.environments
network = {
    "allowlist": [
        {"domain": "api.example.com", "transform": [{"Authorization": "secret-value"}]},
        {"domain": "*.example.com"},
    ]
}
made = environments.create(network=network)
assert made.status == "active" and made.id.startswith("env_"), made
shut = environments.create(network="disabled")
assert environments.get(shut.id).network == "disabled"
got = environments.get(made.id)
assert [entry.domain for entry in got.network.allowlist] == ["api.example.com", "*.example.com"]
assert "secret-value" not in str(got), got
assert {one.id for one in environments.list().environments} == {made.id, shut.id}
refused(400, environments.create, network={"allowlist": [{"domain": "https://a.example.com/"}]})
environments.delete(made.id)
refused(404, environments.get, made.id)

other = genai.Client(api_key="wrong", http_options={"base_url": base_url})
refused(401, other.credentials.get, "variable")
print("all of it worked")
