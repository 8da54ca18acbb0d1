#include "http/problem.h"

#include <nlohmann/json.hpp>

namespace sbx::http {

Problem no_memory_for_body() {
  return {.status = 503,
          .code = problem_code::kBodiesTooLarge,
          .detail = "There is no memory for this body at the moment.",
          .retry_after = std::chrono::seconds(1)};
}

Response to_response(const Problem& problem) {
  // Ordered, so that a person reads what matters first.
  nlohmann::ordered_json document;
  document["status"] = problem.status;
  document["title"] = reason_phrase(problem.status);
  document["code"] = problem.code;
  if (!problem.detail.empty()) document["detail"] = problem.detail;
  if (!problem.field.empty()) document["field"] = problem.field;
  if (!problem.allowed.empty()) document["allowed"] = problem.allowed;
  if (!problem.fix.empty()) document["fix"] = problem.fix;
  if (problem.retry_after) document["retry_after"] = problem.retry_after->count();
  for (const auto& [name, value] : problem.more) document[name] = value;

  Response response{problem.status, {}, "application/problem+json", {}};
  response.body =
      document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (problem.retry_after) {
    response.headers.add("Retry-After", std::to_string(problem.retry_after->count()));
  }
  if (problem.status == 405) {
    std::string allow;
    for (const std::string& method : problem.allowed) {
      if (!allow.empty()) allow += ", ";
      allow += method;
    }
    response.headers.add("Allow", std::move(allow));
  }
  return response;
}

}  // namespace sbx::http
