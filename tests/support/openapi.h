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
