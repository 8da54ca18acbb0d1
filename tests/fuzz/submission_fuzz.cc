// The bodies of POST /v1/requests and /v1/agent: a request within the ceilings, or a problem of a
// known code that names no more than it should.
#include <set>
#include <string>
#include <string_view>

#include "agentd/api/submission.h"
#include "http/problem.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace agentd;
using sbx::fuzz::require;

void judge(const sbx::http::Problem& problem) {
  static const std::set<std::string> codes = {
      "invalid_json",     "duplicate_field", "unknown_field", "missing_field",
      "wrong_type",       "body_too_large",  "invalid_value", "above_ceiling",
      "unknown_language", "text_empty",      "text_too_long", "files_too_large"};
  require(codes.count(problem.code) == 1);
  require(problem.status == 400 || problem.status == 413 || problem.status == 422);
  require(!problem.detail.empty() && problem.detail.size() < 1000);
  require(problem.field.size() < 1000);
  require(!to_response(problem).body.empty());
}

bool is_component(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= api::kMaxFileName &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

void judge(const service::Submitted& submitted, record::Mode mode, const record::Budget& most) {
  const record::Record& record = submitted.record;
  require(record.mode == mode);
  require(!record.text.empty() && record.text.size() <= api::kMaxTextBytes);
  require(record.label.size() <= api::kMaxLabel);
  const bool tools = mode == record::Mode::kTools;
  require(tools || record.language == "python" || record.language == "javascript");
  const record::Budget& budget = record.budget;
  require(budget.attempts >= 1 && budget.attempts <= (tools ? api::kMaxIterations : most.attempts));
  require(budget.tokens >= 1 && budget.tokens <= most.tokens);
  require(budget.cost.value >= 0 && budget.cost <= most.cost);
  require(budget.sandbox.count() >= 1 && budget.sandbox <= most.sandbox);
  require(budget.wall.count() >= 1 && budget.wall <= most.wall);
  require(record.files.size() <= api::kMaxFiles);
  require(submitted.submission.files.size() == record.files.size());
  std::set<std::string> names;
  for (const record::RequestFile& file : record.files) {
    require(is_component(file.name) && names.insert(file.name).second);
  }
  require(submitted.submission.request_sha256.size() == 64);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sbx::fuzz::Bytes bytes(data, size);
  const auto mode = bytes.byte() % 2 == 0 ? record::Mode::kCode : record::Mode::kTools;
  const record::Budget ceilings;
  const auto parsed = api::parse_submission(bytes.rest(), mode, ceilings);
  if (const auto* problem = std::get_if<sbx::http::Problem>(&parsed)) {
    judge(*problem);
  } else {
    judge(std::get<service::Submitted>(parsed), mode, ceilings);
  }
  return 0;
}
