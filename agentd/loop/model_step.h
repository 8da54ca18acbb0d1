// ModelStep: one call of the model with its reservation. Service: agentd; used by both drivers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agentd/loop/machine.h"
#include "agentd/loop/services.h"
#include "agentd/loop/spending.h"
#include "agentd/providers/provider.h"
#include "agentd/record/record.h"
#include "http/async/cancellation.h"
#include "http/async/task.h"

namespace agentd::loop {

struct ModelReply {
  providers::Completion completion{};
  record::Charge charge{};
  double seconds = 0;
};

// No reply, and why the request cannot go on.
struct NoReply {
  Event event{};
  std::string detail{};  // with the fix
  std::string fix{};
  std::optional<record::Attempt> billed{};  // the call, if it may have cost something; without `n`
};

// What is said of a reply that both drivers refuse.
inline constexpr std::string_view kBrokenReply =
    "the connection to the model ended before its reply did; not asked again, since this call may "
    "have been charged";
inline constexpr std::string_view kOwnSecret =
    "the program holds a key of agentd's own and was not run; write it without one";

using ModelOutcome = std::variant<ModelReply, NoReply>;

class ModelStep {
 public:
  // All are borrowed and outlive it.
  ModelStep(const Services& services, Spending& spending, const sbx::async::Cancellation& stop)
      : services_(services), spending_(spending), stop_(stop) {}

  enum class Brings : std::uint8_t { kRun, kAnything };  // what a good reply does
  // Reserves, asks, settles. With stop raised: kCancelled, after what was reserved is settled.
  [[nodiscard]] sbx::async::Task<ModelOutcome> ask(std::vector<providers::Message> messages,
                                                   std::vector<providers::Tool> tools,
                                                   providers::RecordingKey key, Brings brings);

 private:
  [[nodiscard]] NoReply give_up(CallPlan plan, const providers::ProviderError& error,
                                double seconds);

  const Services& services_;
  Spending& spending_;
  const sbx::async::Cancellation& stop_;
};

// Puts a call that was billed but not answered into the record, whose attempts then add up to what
// was spent.
void add_billed(record::Record& record, NoReply& none);

}  // namespace agentd::loop
