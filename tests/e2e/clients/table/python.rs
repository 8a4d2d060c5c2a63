//! Which libraries of Python, and programs written in it?

use super::{CLIENT, Client, Needs, Speaks};

/// The answer to a request for what is in a bucket.
const BUCKET: &str = "echo \"<?xml version='1.0'?><ListBucketResult><Name>bucket</Name><Contents>\
                      <Key>$GREETING</Key><Size>1</Size>\
                      <LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>\
                      </ListBucketResult>\" > bucket";

pub(crate) const URLLIB: Client = Client {
    name: "Python urllib",
    trust: "`SSL_CERT_FILE`",
    command: "python3 -c 'import urllib.request
with urllib.request.urlopen(\"https://api.example.com/greeting\") as answer:
    print(answer.read().decode())'",
    ..CLIENT
};

pub(crate) const REQUESTS: Client = Client {
    name: "Python requests",
    trust: "`REQUESTS_CA_BUNDLE`",
    command: "python -c 'import requests
print(requests.get(\"https://api.example.com/greeting\").text)'",
    ..CLIENT
};

pub(crate) const HTTPX: Client = Client {
    name: "Python httpx",
    trust: "`SSL_CERT_FILE`",
    command: "python -c 'import httpx
print(httpx.get(\"https://api.example.com/greeting\").text)'",
    ..CLIENT
};

pub(crate) const AIOHTTP: Client = Client {
    name: "Python aiohttp",
    by_proxy: Needs::Words("trust_env=True"),
    trust: "`SSL_CERT_FILE`",
    notes: "an argument of `ClientSession`, which else reads no proxy variable",
    command: "python -c 'import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession({more}) as session:
        async with session.get(\"https://api.example.com/greeting\") as answer:
            print(await answer.text())
asyncio.run(main())'",
    ..CLIENT
};

pub(crate) const BOTO3: Client = Client {
    name: "boto3",
    trust: "`AWS_CA_BUNDLE`",
    offered: BUCKET,
    command: "python -c 'import boto3, botocore
unsigned = botocore.client.Config(signature_version=botocore.UNSIGNED)
s3 = boto3.client(\"s3\", endpoint_url=\"https://api.example.com\", config=unsigned)
print(s3.list_objects_v2(Bucket=\"bucket\")[\"Contents\"][0][\"Key\"])'",
    ..CLIENT
};

pub(crate) const AWS: Client = Client {
    name: "AWS CLI",
    trust: "`AWS_CA_BUNDLE`",
    offered: BUCKET,
    command: "aws s3 ls s3://bucket --no-sign-request --endpoint-url https://api.example.com",
    ..CLIENT
};

pub(crate) const GRPCIO: Client = Client {
    name: "Python grpcio",
    speaks: Speaks::Grpc,
    trust: "`GRPC_DEFAULT_SSL_ROOTS_FILE_PATH`",
    command: "python -c 'import grpc
channel = grpc.secure_channel(\"grpc.example.com:443\", grpc.ssl_channel_credentials())
print(channel.unary_unary(\"/test.Greeter/Greet\")(b\"\", timeout=30).decode())'",
    ..CLIENT
};
