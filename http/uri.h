// Request targets: splitting, percent-decoding, query parameters (RFC 3986, origin form only).
//
// What comes out is any bytes but NUL: "/" and ".." too where the client wrote %2F and "..".
// Nothing is normalized; who opens files checks their names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sbx::http {

// nullopt for a "%" without two hex digits, or for %00.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);
// Everything but unreserved characters and those in `keep` as %XX.
[[nodiscard]] std::string percent_encode(std::string_view text, std::string_view keep = {});

// The parameters of a query string, in order. "+" is a plus (this is no form).
class Query {
 public:
  // nullopt for a bad encoding. "a" is {"a", ""}; empty parts are skipped.
  [[nodiscard]] static std::optional<Query> parse(std::string_view text);

  // The first of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& all() const { return all_; }

 private:
  std::vector<std::pair<std::string, std::string>> all_;
};

struct Target {
  std::vector<std::string> segments;  // decoded; "/a//b" is {"a", "", "b"}, "/" is {""}
  std::string path;                   // as sent, without the query
  Query query;
};
// nullopt when it does not start with "/", or has a bad encoding, a fragment, a blank or a control.
[[nodiscard]] std::optional<Target> parse_target(std::string_view text);

}  // namespace sbx::http
