#!/usr/bin/python3 -IS
"""A compute-sanitizer that does as $FAKE_SANITIZER says: JSON, "<tool>" -> fires (default), silent, accuses_all;
"refuse" -> true: it rejects the device; "found" -> a component in which it finds something; "never_ran" -> likewise."""
import json
import os
import subprocess
import sys

REPORTS = {
    "memcheck": "Invalid __global__ write of size 4 bytes",
    "racecheck": "Error: Race reported between Write access and Read access",
    "initcheck": "Uninitialized __global__ memory read of size 4 bytes",
    "synccheck": "Barrier error detected. Divergent thread(s) in warp"}
behaviour = json.loads(os.environ.get("FAKE_SANITIZER", "{}"))
tool = sys.argv[sys.argv.index("--tool") + 1]
start = next(index for index, word in enumerate(sys.argv) if word.endswith(("/twinbench", "/sanitizer_probe")))
command = sys.argv[start:]
print("========= COMPUTE-SANITIZER")
if behaviour.get("refuse"):
    print("========= Error: Device not supported. Please refer to the release notes")
    sys.exit(1)
if command[0].endswith("sanitizer_probe"):
    planted = not command[1].endswith("_correct")
    how = behaviour.get(tool, "fires")
    found = how == "accuses_all" or (planted and how == "fires")
else:
    text = " ".join(command)
    if behaviour.get("never_ran") and behaviour["never_ran"] in text.replace("\\", ""):
        print("========= Error: Target application terminated before first instrumented API call")
        sys.exit(255)
    subprocess.run(command, check=False)
    found = bool(behaviour.get("found")) and behaviour["found"] in text.replace("\\", "")
if found:
    print(f"========= {REPORTS[tool]}\n=========     at twinbench::kernel+0x90")
if tool == "racecheck":
    print(
        f"========= RACECHECK SUMMARY: {int(found)} hazard{'' if found else 's'} displayed ({int(found)} errors, 0 "
        "warnings)"
    )
else:
    print(f"========= ERROR SUMMARY: {int(found)} error{'' if found else 's'}")
sys.exit(86 if found else 0)
