"""Makes a wheel with one module, and the simple index (PEP 503) that names it."""

import os
import sys
import zipfile

WHEEL = "greeter-1.0-py3-none-any.whl"
METADATA = "Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n"
KIND = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

os.makedirs("simple/greeter")
with zipfile.ZipFile(f"simple/greeter/{WHEEL}", "w") as wheel:
    wheel.writestr("greeter.py", f"TEXT = {sys.argv[1]!r}\n")
    wheel.writestr("greeter-1.0.dist-info/METADATA", METADATA)
    wheel.writestr("greeter-1.0.dist-info/WHEEL", KIND)
    wheel.writestr("greeter-1.0.dist-info/RECORD", "")
with open("simple/greeter/index.html", "w") as index:
    index.write(f'<!DOCTYPE html><a href="{WHEEL}">{WHEEL}</a>\n')
