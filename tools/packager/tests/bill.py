"""Validates a bill of materials against the schema of CycloneDX 1.5."""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
problem = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
if problem:
    sys.exit(f"not valid: {problem}")

bill = json.loads(text)
references = {component["bom-ref"] for component in bill["components"]}
references.add(bill["metadata"]["component"]["bom-ref"])
for dependency in bill["dependencies"]:
    unknown = set(dependency["dependsOn"]) - references
    if unknown or dependency["ref"] not in references:
        sys.exit(f"{dependency['ref']} depends on components that are not listed: {unknown}")
print(f"  {len(bill['components'])} components, valid")
