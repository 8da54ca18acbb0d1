// LiveRequest: a request from its submission until its record is stored. On the loop.
//
// Owned by the RequestService; a second owner is each handler that follows its events, which may
// outlast it there.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agentd/history/history.h"
#include "agentd/loop/services.h"
#include "agentd/record/record.h"
#include "agentd/redact/redactor.h"
#include "http/async/cancellation.h"
#include "http/async/event.h"
#include "http/async/loop.h"

namespace agentd::service {

// As it is sent: id counts from 1.
struct LiveEvent {
  int id = 0;
  std::string_view kind;  // "state", "end"
  redact::Clean data;     // JSON
};

struct LiveRequest {
  explicit LiveRequest(sbx::async::Loop& loop) : changed(loop) {}

  record::Record record;
  loop::Submission submission;
  history::Owner owner;
  std::size_t held_bytes = 0;  // of the files in memory
  std::chrono::steady_clock::time_point submitted = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> started{};  // none while it waits

  sbx::async::Cancellation stop;
  // kRefused: it could not be put on record, and nothing is told of it.
  enum class Standing : std::uint8_t { kUnknown, kOnRecord, kRefused };
  Standing standing = Standing::kUnknown;
  std::vector<LiveEvent> events;
  std::size_t kept_attempts = 0;  // that are on record already
  int followers = 0;              // of its events, now
  bool sealed = false;            // ended and stored, artifacts included; the last event is "end"
  sbx::async::Event changed;      // standing, events, sealed
};

}  // namespace agentd::service
