"""Writes down each whole request that gunicorn has read, and answers 299."""

import json
import os


def application(environ, start_response):
    body = environ["wsgi.input"].read()
    there = lambda name: [environ[name]] if name in environ else []
    line = {
        "port": os.environ["LISTENER"],
        "method": environ["REQUEST_METHOD"],
        "target": environ["RAW_URI"],
        "host": there("HTTP_HOST"),
        "injected": there("HTTP_X_INJECTED"),
        "body": body.hex(),
    }
    with open(os.environ["READINGS"], "a") as file:
        file.write(json.dumps(line) + "\n")
    start_response("299 Read", [("Content-Length", "0")])
    return []
