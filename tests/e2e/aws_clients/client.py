"""What programs do with boto3."""

import io
import urllib.error
import urllib.request

import boto3
from botocore.config import Config

URL = "https://api.example.com"


def client(service, **more):
    return boto3.client(service, endpoint_url=URL, **more)


s3 = client("s3", config=Config(s3={"addressing_style": "path"}))
s3.put_object(Bucket="b", Key="a key/with ü+%", Body=b"hello")
assert s3.get_object(Bucket="b", Key="a key/with ü+%")["Body"].read() == b"hello"
s3.upload_fileobj(io.BytesIO(b"x" * 9_000_000), "b", "big")
assert s3.head_object(Bucket="b", Key="big")["ContentLength"] == 9_000_000
keys = [one["Key"] for one in s3.list_objects_v2(Bucket="b", Prefix="b")["Contents"]]
assert keys == ["big"], keys
s3.delete_object(Bucket="b", Key="big")

assert client("sts").get_caller_identity()["Account"] == "123456789012"
assert client("dynamodb").list_tables()["TableNames"] == ["a-table"]

presigned = s3.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "big"})
try:
    urllib.request.urlopen(presigned)
    raise SystemExit("a presigned URL was not refused")
except urllib.error.HTTPError as error:
    assert error.code == 400 and b"presigned" in error.read()
print("all of it worked")
