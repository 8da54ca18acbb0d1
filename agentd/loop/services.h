// What the loop works with, borrowed from main(). Service: agentd.
#pragma once

#include <chrono>
#include <functional>

#include "agentd/ledger/ledger.h"
#include "agentd/prompts/composer.h"
#include "agentd/providers/provider.h"
#include "agentd/record/record.h"
#include "agentd/redact/redactor.h"
#include "agentd/sandbox/sandbox.h"

namespace agentd::loop {

struct Services {
  providers::Provider& provider;
  sandbox::Sandbox& sandbox;
  ledger::Ledger& ledger;
  const prompts::Composer& composer;
  const redact::Redactor& redactor;
  int max_tokens = 2048;                       // of one reply
  std::chrono::milliseconds run_wall{30'000};  // of one run
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// A submitted request, besides its record. Constant while the loop works on it.
struct Submission {
  std::string files_description{};          // prompts::describe_files()
  std::vector<sandbox::InputFile> files{};  // for the sandbox
  std::string request_sha256{};             // of recordings
};

// Called after each change of the record's state; the record may be read during the call.
using OnChange = std::function<void(const record::Record&)>;

}  // namespace agentd::loop
