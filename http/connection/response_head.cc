#include "http/connection/response_head.h"

#include <algorithm>
#include <array>

namespace sbx::http {
namespace {

void append_clean(std::string& head, std::string_view text) {
  const std::size_t from = head.size();
  head += text;
  std::replace_if(
      head.begin() + static_cast<std::ptrdiff_t>(from), head.end(),
      [](unsigned char byte) { return (byte < 0x20 && byte != '\t') || byte == 0x7F; }, ' ');
}

void append_field(std::string& head, std::string_view name, std::string_view value) {
  append_clean(head, name);
  head += ": ";
  append_clean(head, value);
  head += "\r\n";
}

// IMF-fixdate (RFC 9110 5.6.7); written out because strftime's names follow the locale.
std::string http_date(std::time_t now) {
  constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  if (::gmtime_r(&now, &utc) == nullptr) return {};
  std::array<char, 64> rest{};
  const std::size_t size = std::strftime(rest.data(), rest.size(), " %Y %H:%M:%S GMT", &utc);
  std::string date = kDays.at(static_cast<std::size_t>(utc.tm_wday));
  date += utc.tm_mday < 10 ? ", 0" : ", ";
  date += std::to_string(utc.tm_mday);
  date += ' ';
  date += kMonths.at(static_cast<std::size_t>(utc.tm_mon));
  return date.append(rest.data(), size);
}

}  // namespace

bool is_bodiless(int status) {
  return status < 200 || status == 204 || status == 304;
}

std::string response_head(const Response& response, const Framing& framing, std::time_t now) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head += reason_phrase(response.status);
  head += "\r\n";
  append_field(head, "Date", http_date(now));
  if (!response.content_type.empty()) append_field(head, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers.fields()) append_field(head, name, value);
  if (framing.length) append_field(head, "Content-Length", std::to_string(*framing.length));
  if (framing.chunked) append_field(head, "Transfer-Encoding", "chunked");
  if (framing.close) append_field(head, "Connection", "close");
  if (framing.say_keep_alive && !framing.close) append_field(head, "Connection", "keep-alive");
  head += "\r\n";
  return head;
}

}  // namespace sbx::http
