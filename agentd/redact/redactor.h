// Redactor: the one place where key-shaped strings are taken out of what agentd shows.
//
// Whatever holds words of a person, a model or a program (records, events, problems of routes,
// history, text artifacts) leaves agentd as Clean text, and only a Redactor makes Clean text, by
// itself or for a JsonWriter. Logs and metrics hold none of their words: ids, counts, names and
// errors of ours. What is redacted: keys by the shapes that vendors give them, private keys in PEM,
// JSON web tokens, and the daemon's own secrets as they are and in the encodings that own_secrets.h
// names. Binary artifacts are not looked into.
//
// SECURITY: a layer beside the boundary, never the boundary: agentd's secrets are not given to the
// sandbox in the first place.
//
// Immutable; from any thread. Linear in the text but for a constant.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "agentd/redact/secret.h"

namespace agentd::redact {

class JsonWriter;
class OwnSecrets;

// UTF-8 without secrets.
class Clean {
 public:
  Clean() = default;
  [[nodiscard]] const std::string& text() const { return text_; }

  // Of two JSON objects that are not empty and have no member in common, one.
  [[nodiscard]] static Clean merged(const Clean& object, const Clean& other);

 private:
  friend class JsonWriter;
  friend class Redactor;
  explicit Clean(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// Own secrets that are shorter are not looked for: they would be found in ordinary words.
inline constexpr std::size_t kMinSecretBytes = 8;

class Redactor {
 public:
  explicit Redactor(std::vector<Secret> own = {});
  Redactor(Redactor&&) noexcept;
  Redactor& operator=(Redactor&&) noexcept;
  ~Redactor();

  struct Hit {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string_view name;  // what it is: "openai-key", "private-key", "own-secret"
    bool operator==(const Hit&) const = default;
  };
  // In the order of the text, not overlapping.
  [[nodiscard]] std::vector<Hit> find(std::string_view text) const;

  // Each hit as "[redacted:NAME]"; bytes that are not UTF-8 as U+FFFD.
  [[nodiscard]] Clean clean(std::string_view text) const;
  // An own secret is in it, in some form.
  [[nodiscard]] bool holds_own(std::string_view text) const;
  // Whoever has taken bytes out of a text takes as many more on both sides, so that of a key that
  // was cut no half is left.
  [[nodiscard]] std::size_t reach() const;
  // Every string in it, keys too; compact.
  [[nodiscard]] Clean clean_json(const nlohmann::ordered_json& json) const;

 private:
  friend class JsonWriter;
  [[nodiscard]] std::size_t whole_length(std::string_view text, std::size_t from,
                                         std::size_t length) const;
  // True when clean() would not change it; false when it might.
  [[nodiscard]] bool stays(std::string_view text) const;
  void append_json(std::string& to, const nlohmann::ordered_json& json) const;
  void append_json_object(std::string& to, const nlohmann::ordered_json& json) const;
  void append_json_string(std::string& to, std::string_view text) const;

  std::unique_ptr<OwnSecrets> own_;
  std::array<bool, 256> starts_{};  // bytes that a secret may begin with
};

}  // namespace agentd::redact
