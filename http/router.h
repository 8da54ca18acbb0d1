// Router: which handler answers which method and path.
//
// Built by main(), then constant. Templates are absolute: literal segments, "{name}" for exactly
// one segment that is not empty, and as the last one "{name...}" for one or more. A literal wins
// over
// "{name}", which wins over "{name...}".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/handler.h"

namespace sbx::http {

enum class BodyMode : std::uint8_t {
  kNone,    // a body is refused (413)
  kWhole,   // in Request::body
  kStream,  // by Request::stream
};

struct Route {
  Method method = Method::kGet;
  std::string path{};  // the template
  Handler handler{};
  BodyMode body = BodyMode::kNone;
  // Bytes; unset: ServerLimits::body_bytes.
  std::optional<std::uint64_t> body_limit{};
  // The query parameters that there are, each once at most: 400 for another or a second. Unset: the
  // handler looks.
  std::optional<std::vector<std::string>> query{};
};

class Router {
 public:
  // Precondition: the template is well-formed, and the pair of method and template is new.
  void add(Route route);

  struct Match {
    const Route* route = nullptr;
    std::map<std::string, std::string> parameters;
  };
  // HEAD goes to GET's handler. Else a Problem: 404, or 405 with the methods that there are in
  // `allowed`.
  [[nodiscard]] std::variant<Match, Problem> find(Method method, const Target& target) const;

  // In the order of add(), for the test that compares them with the OpenAPI document.
  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
  std::vector<std::vector<std::string>> templates_;  // split, as routes_
};

}  // namespace sbx::http
