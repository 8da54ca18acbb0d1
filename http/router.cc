#include "http/router.h"

#include <algorithm>

namespace sbx::http {
namespace {

using Parameters = std::map<std::string, std::string>;

enum class Kind : std::uint8_t { kLiteral, kOne, kRest };

Kind kind_of(std::string_view segment) {
  if (!segment.starts_with('{')) return Kind::kLiteral;
  return segment.ends_with("...}") ? Kind::kRest : Kind::kOne;
}

std::string name_of(std::string_view segment) {
  const std::size_t closing = kind_of(segment) == Kind::kRest ? 4 : 1;
  return std::string(segment.substr(1, segment.size() - 1 - closing));
}

std::string joined(const std::vector<std::string>& segments, std::size_t from) {
  std::string path = segments[from];
  for (std::size_t i = from + 1; i < segments.size(); ++i) path += "/" + segments[i];
  return path;
}

std::optional<Parameters> match(const std::vector<std::string>& segments,
                                const std::vector<std::string>& pattern) {
  Parameters parameters;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (i >= segments.size()) return std::nullopt;
    switch (kind_of(pattern[i])) {
      case Kind::kLiteral:
        if (segments[i] != pattern[i]) return std::nullopt;
        break;
      case Kind::kOne:
        if (segments[i].empty()) return std::nullopt;
        parameters.emplace(name_of(pattern[i]), segments[i]);
        break;
      case Kind::kRest: {
        std::string rest = joined(segments, i);
        if (rest.empty()) return std::nullopt;
        parameters.emplace(name_of(pattern[i]), std::move(rest));
        return parameters;
      }
    }
  }
  if (segments.size() != pattern.size()) return std::nullopt;
  return parameters;
}

// Literals first, then "{name}", then "{name...}", segment by segment.
bool more_specific(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const std::string& x, const std::string& y) { return kind_of(x) < kind_of(y); });
}

// Problems of the router leave out the path: a client may have put a key into it.
Problem not_found() {
  return {
      .status = 404, .code = problem_code::kNotFound, .detail = "there is nothing at this path"};
}

}  // namespace

void Router::add(Route route) {
  const auto target = parse_target(percent_encode(route.path, "/"));
  templates_.push_back(target->segments);
  routes_.push_back(std::move(route));
}

std::variant<Router::Match, Problem> Router::find(Method method, const Target& target) const {
  const Method wanted = method == Method::kHead ? Method::kGet : method;
  std::optional<std::size_t> best;
  Parameters best_parameters;
  std::vector<std::string> allowed;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    auto parameters = match(target.segments, templates_[i]);
    if (!parameters) continue;
    allowed.emplace_back(to_string(routes_[i].method));
    if (routes_[i].method != wanted) continue;
    if (best && !more_specific(templates_[i], templates_[*best])) continue;
    best = i;
    best_parameters = *std::move(parameters);
  }
  if (best) return Match{&routes_[*best], std::move(best_parameters)};
  if (allowed.empty()) return not_found();
  std::ranges::sort(allowed);
  const auto repeated = std::ranges::unique(allowed);
  allowed.erase(repeated.begin(), repeated.end());
  if (std::ranges::find(allowed, "GET") != allowed.end()) allowed.emplace_back("HEAD");
  return Problem{.status = 405,
                 .code = problem_code::kMethodNotAllowed,
                 .detail = "this path does not take this method",
                 .allowed = std::move(allowed)};
}

}  // namespace sbx::http
