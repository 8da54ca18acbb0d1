// The body of POST /v1/sessions: refused with a whole problem, or within every ceiling.
#include "runtime/daemon/session_request.h"
#include "tests/fuzz/entry.h"

namespace {

using sbx::fuzz::require;

sbx::daemon::RequestRules make_rules() {
  sbx::daemon::RequestRules rules;
  auto profile = sbx::policy::load_policy("default");
  require(profile.has_value());
  rules.profiles.push_back(*std::move(profile));
  rules.ceilings = sbx::daemon::default_ceilings();
  return rules;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx::daemon;
  static const RequestRules rules = make_rules();
  static const SessionTimes times{std::chrono::seconds(3600), std::chrono::seconds(86400)};
  const auto parsed = parse_session_request(sbx::fuzz::as_text(data, size), rules, times);
  if (const auto* problem = std::get_if<sbx::http::Problem>(&parsed)) {
    require(problem->status >= 400 && problem->status < 500);
    require(!problem->code.empty() && !problem->detail.empty());
    require(problem->field.size() < 512);
    return 0;
  }
  const SessionWish& wish = std::get<SessionWish>(parsed);
  require(wish.work <= std::uint64_t{1} << 30 && wish.work_inodes <= 65536);
  require(wish.idle.count() >= 1 && wish.idle <= times.idle);
  require(wish.age.count() >= 1 && wish.age <= times.age);
  return 0;
}
