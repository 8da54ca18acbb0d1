"""The package against the daemons' OpenAPI documents, and against the oldest Python."""

import ast
import dataclasses
import inspect
import json
import pathlib
import unittest

import sbx
import sbx.agent

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = pathlib.Path(sbx.__file__).parent
SCHEMAS = json.loads((ROOT / "runtime/daemon/openapi.json").read_text())["components"]["schemas"]
AGENT = json.loads((ROOT / "agentd/api/openapi.json").read_text())["components"]["schemas"]


def names(kind):
    return {field.name.rstrip("_") for field in dataclasses.fields(kind)}


class Contract(unittest.TestCase):
    def test_limits_are_the_daemons(self):
        self.assertEqual(names(sbx.SandboxLimits), set(SCHEMAS["Limits"]["properties"]))

    def test_results_are_the_daemons(self):
        encoded = {"stdout_base64", "stderr_base64"}  # as stdout_bytes and stderr_bytes
        fields = set(SCHEMAS["Result"]["properties"])
        self.assertEqual(names(sbx.ExecutionResult), fields - encoded | {"raw"})
        self.assertEqual(names(sbx.Layer), set(SCHEMAS["Layer"]["properties"]))
        self.assertEqual(names(sbx.RefusedEntry), set(SCHEMAS["RefusedEntry"]["properties"]))
        workspace = SCHEMAS["Result"]["properties"]["workspace"]
        self.assertEqual(names(sbx.Workspace), set(workspace["properties"]))
        for field, kind in (("denials", sbx.Denial), ("notes", sbx.Note)):
            items = SCHEMAS["Result"]["properties"][field]["items"]
            self.assertEqual(names(kind), set(items["properties"]), field)

    def test_every_field_of_a_request_can_be_said(self):
        said = set(inspect.signature(sbx._client.run_body).parameters)
        asked = set(SCHEMAS["RunRequest"]["properties"])
        self.assertLessEqual(asked, said)

    def test_requests_and_their_records_are_agentds(self):
        for kind, schema in ((sbx.agent.Summary, "Summary"), (sbx.agent.Reason, "Reason"),
                             (sbx.agent.Provider, "Provider"), (sbx.agent.Artifact, "Artifact"),
                             (sbx.agent.RequestFile, "RequestFile"), (sbx.agent.Envelope, "Result"),
                             (sbx.agent.Attempt, "Attempt"), (sbx.agent.AttemptRun, "Run"),
                             (sbx.agent.ToolUse, "ToolUse"), (sbx.agent.Budget, "BudgetRequest")):
            self.assertEqual(names(kind), set(AGENT[schema]["properties"]), schema)
        record = names(sbx.agent.AgentResult) - {"raw", "transport"}
        self.assertEqual(record, set(AGENT["Record"]["properties"]) - {"result"} | {"envelope"})

    def test_every_field_of_a_request_to_agentd_can_be_said(self):
        for call, schema in ((sbx.agent.run_request, "Request"), (sbx.agent.run_agent, "Task")):
            said = set(inspect.signature(call).parameters)
            self.assertEqual(said, set(AGENT[schema]["properties"]) | {"socket", "timeout"})

    def test_the_signature_is_the_promised_one(self):
        parameters = list(inspect.signature(sbx.run_code).parameters.values())[:4]
        self.assertEqual([each.name for each in parameters],
                         ["code", "language", "timeout_seconds", "limits"])
        self.assertEqual(parameters[1].default, "python")
        self.assertEqual(parameters[2].default, 30)

    def test_every_file_is_of_python_3_9_and_of_the_standard_library(self):
        import sys
        standard = getattr(sys, "stdlib_module_names", None)
        for path in sorted(PACKAGE.glob("*.py")):
            tree = ast.parse(path.read_text(), feature_version=(3, 9))
            for node in ast.walk(tree):
                modules = ([alias.name for alias in node.names] if isinstance(node, ast.Import)
                           else [node.module] if isinstance(node, ast.ImportFrom) and not node.level
                           else [])
                for module in modules:
                    if standard is not None:
                        self.assertIn(module.split(".")[0], standard, path)


if __name__ == "__main__":
    unittest.main()
