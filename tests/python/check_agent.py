"""Checks that a launchd agent is a property list that runs the scheduler, for a strict parser of XML too."""

import plistlib
import sys
import xml.dom.minidom
from pathlib import Path

text = Path(sys.argv[1]).read_bytes()
assert plistlib.loads(text)["ProgramArguments"][1] == "schedule"
xml.dom.minidom.parseString(text)
