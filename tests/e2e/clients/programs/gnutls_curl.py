"""Gets a page by the libcurl that is built with GnuTLS: URL [CAINFO=FILE]."""

import ctypes
import sys

URL, CAINFO, FAIL_ON_ERROR = 10002, 10065, 45

curl = ctypes.CDLL("libcurl-gnutls.so.4")
curl.curl_version.restype = curl.curl_easy_init.restype = ctypes.c_void_p
curl.curl_easy_strerror.restype = ctypes.c_char_p
assert b"GnuTLS" in ctypes.string_at(curl.curl_version())

handle = ctypes.c_void_p(curl.curl_easy_init())
curl.curl_easy_setopt(handle, URL, ctypes.c_char_p(sys.argv[1].encode()))
curl.curl_easy_setopt(handle, FAIL_ON_ERROR, ctypes.c_long(1))
for word in sys.argv[2:]:
    path = word.removeprefix("CAINFO=")
    curl.curl_easy_setopt(handle, CAINFO, ctypes.c_char_p(path.encode()))
# Without a function of ours the page goes to standard output.
code = curl.curl_easy_perform(handle)
if code:
    sys.exit(curl.curl_easy_strerror(code).decode())
