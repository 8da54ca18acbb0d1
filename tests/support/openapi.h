// What an OpenAPI document must hold whatever it describes. `Json`: one of nlohmann's.
#pragma once

#include <cctype>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "http/message.h"

namespace sbx::test {

// "get /v1/runs/{id}". "{path...}" of the router is "{path}" in OpenAPI.
inline std::string operation(http::Method method, std::string path) {
  std::string name(to_string(method));
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  if (const std::size_t dots = path.find("..."); dots != std::string::npos) path.erase(dots, 3);
  return name + " " + path;
}

template <typename Json>
std::set<std::string> described_operations(const Json& document) {
  std::set<std::string> described;
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& method : methods.items()) described.insert(method.key() + " " + path);
  }
  return described;
}

// What the server itself answers to any call, before a handler sees it (http/problem.h).
inline constexpr const char* kOwnStatuses[] = {"400", "403", "404", "405", "408", "413", "414",
                                               "415", "417", "429", "431", "500", "503"};

// Operations that leave out one of kOwnStatuses: neither listed nor named by their `default`.
template <typename Json>
std::vector<std::string> operations_without_refusals(const Json& document) {
  std::vector<std::string> wanting;
  for (const auto& [path, methods] : document["paths"].items()) {
    for (const auto& method : methods.items()) {
      const Json& responses = method.value()["responses"];
      std::string named;
      if (responses.contains("default")) {
        const std::string target = responses["default"]["$ref"].template get<std::string>();
        named = document[typename Json::json_pointer(target.substr(1))]["description"];
      }
      for (const char* const status : kOwnStatuses) {
        if (responses.contains(status) || named.find(status) != std::string::npos) continue;
        wanting.push_back(method.key() + " " + path + " " + status);
      }
    }
  }
  return wanting;
}

struct References {
  std::size_t count = 0;
  std::vector<std::string> lead_nowhere{};
};

template <typename Json>
References references_in(const Json& document) {
  References found;
  std::vector<const Json*> open{&document};
  while (!open.empty()) {
    const Json* const value = open.back();
    open.pop_back();
    if (value->is_object() && value->contains("$ref")) {
      const std::string target = value->at("$ref").template get<std::string>();
      const typename Json::json_pointer pointer(target.substr(1));
      if (!document.contains(pointer)) found.lead_nowhere.push_back(target);
      ++found.count;
    }
    if (value->is_structured()) {
      for (const Json& item : *value) open.push_back(&item);
    }
  }
  return found;
}

}  // namespace sbx::test
