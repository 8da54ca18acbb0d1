#include "agentd/providers/sse.h"

#include <utility>

namespace agentd::providers {

std::vector<SseEvent> SseParser::feed(std::string_view bytes) {
  std::vector<SseEvent> events;
  while (!bytes.empty() && !failed_) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + data_.size() + end > kMaxSseEventBytes) {
      failed_ = true;
      break;
    }
    line_ += bytes.substr(0, end);
    bytes.remove_prefix(end);
    if (bytes.empty()) break;
    after_cr_ = bytes.front() == '\r';
    bytes.remove_prefix(1);
    end_line(events);
  }
  return events;
}

void SseParser::end_line(std::vector<SseEvent>& events) {
  std::string line = std::exchange(line_, {});
  if (std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  if (line.empty()) {
    if (has_data_) {
      events.push_back({type_.empty() ? "message" : std::move(type_), std::move(data_)});
    }
    type_.clear();
    data_.clear();
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == 0) return;  // a comment
  const std::string_view name = std::string_view(line).substr(0, colon);
  std::string_view value;
  if (colon != std::string::npos) value = std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  field(name, value);
}

void SseParser::field(std::string_view name, std::string_view value) {
  if (name == "event") {
    type_ = value;
  } else if (name == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
}

std::string SseParser::take_rest() {
  std::vector<SseEvent> events;
  if (!line_.empty() && !failed_) end_line(events);
  has_data_ = false;
  return std::exchange(data_, {});
}

}  // namespace agentd::providers
