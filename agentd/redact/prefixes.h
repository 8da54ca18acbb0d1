// What keys begin with, and what follows it. Internal to redact/: a table.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "agentd/redact/shapes.h"

namespace agentd::redact {

struct Prefixed {
  std::string_view prefix;
  ShapeFinder::Chars chars;
  std::size_t min;  // of what follows
  std::size_t max;  // exactly `min` when equal; 0: no bound
  std::string_view name;
  bool by_pieces = false;  // words with dashes between are none
  // Nothing else is called so: without a digit it is one where it mixes cases in a long piece.
  bool unmistakable = false;
};

// Longer prefixes before those that they begin with.
inline constexpr std::array kPrefixed = {
    Prefixed{"sk-ant-", ShapeFinder::Chars::kToken, 20, 0, "anthropic-key"},
    Prefixed{"sk-or-v1-", ShapeFinder::Chars::kHex, 32, 0, "openrouter-key"},
    Prefixed{"sk-lf-", ShapeFinder::Chars::kToken, 30, 0, "langfuse-key"},
    Prefixed{"sk-", ShapeFinder::Chars::kToken, 20, 0, "openai-key", true},
    Prefixed{"gsk_", ShapeFinder::Chars::kAlnum, 20, 0, "groq-key"},
    Prefixed{"xai-", ShapeFinder::Chars::kAlnum, 40, 0, "xai-key"},
    Prefixed{"pplx-", ShapeFinder::Chars::kAlnum, 32, 0, "perplexity-key"},
    Prefixed{"nvapi-", ShapeFinder::Chars::kToken, 60, 0, "nvidia-key"},
    Prefixed{"csk-", ShapeFinder::Chars::kAlnum, 40, 0, "cerebras-key"},
    Prefixed{"tgp_v1_", ShapeFinder::Chars::kToken, 40, 0, "together-key"},
    Prefixed{"hf_", ShapeFinder::Chars::kAlnum, 34, 34, "huggingface-token"},  // letters alone
    Prefixed{"hf_", ShapeFinder::Chars::kAlnum, 30, 0, "huggingface-token"},
    Prefixed{"r8_", ShapeFinder::Chars::kAlnum, 37, 0, "replicate-token"},
    Prefixed{"ghp_", ShapeFinder::Chars::kAlnum, 30, 0, "github-token"},
    Prefixed{"gho_", ShapeFinder::Chars::kAlnum, 30, 0, "github-token"},
    Prefixed{"ghu_", ShapeFinder::Chars::kAlnum, 30, 0, "github-token"},
    Prefixed{"ghs_", ShapeFinder::Chars::kAlnum, 30, 0, "github-token"},
    Prefixed{"ghr_", ShapeFinder::Chars::kAlnum, 30, 0, "github-token"},
    Prefixed{"github_pat_", ShapeFinder::Chars::kWord, 40, 0, "github-token"},
    Prefixed{"glpat-", ShapeFinder::Chars::kToken, 20, 0, "gitlab-token", false, true},
    Prefixed{"AKIA", ShapeFinder::Chars::kUpperAlnum, 16, 16, "aws-key-id"},
    Prefixed{"ASIA", ShapeFinder::Chars::kUpperAlnum, 16, 16, "aws-key-id"},
    Prefixed{"ABIA", ShapeFinder::Chars::kUpperAlnum, 16, 16, "aws-key-id"},
    Prefixed{"ACCA", ShapeFinder::Chars::kUpperAlnum, 16, 16, "aws-key-id"},
    Prefixed{"AIza", ShapeFinder::Chars::kToken, 35, 35, "google-key"},
    Prefixed{"GOCSPX-", ShapeFinder::Chars::kToken, 24, 0, "google-client-secret"},
    Prefixed{"ya29.", ShapeFinder::Chars::kToken, 30, 0, "google-token"},
    Prefixed{"xoxb-", ShapeFinder::Chars::kToken, 20, 0, "slack-token", true, true},
    Prefixed{"xoxp-", ShapeFinder::Chars::kToken, 20, 0, "slack-token", true, true},
    Prefixed{"xoxa-", ShapeFinder::Chars::kToken, 20, 0, "slack-token", true, true},
    Prefixed{"xoxr-", ShapeFinder::Chars::kToken, 20, 0, "slack-token", true, true},
    Prefixed{"xoxs-", ShapeFinder::Chars::kToken, 20, 0, "slack-token", true, true},
    Prefixed{"xoxe-", ShapeFinder::Chars::kToken, 20, 0, "slack-token", true, true},
    Prefixed{"xapp-", ShapeFinder::Chars::kToken, 20, 0, "slack-token", true, true},
    Prefixed{"sk_live_", ShapeFinder::Chars::kAlnum, 16, 0, "stripe-key", false, true},
    Prefixed{"sk_test_", ShapeFinder::Chars::kAlnum, 16, 0, "stripe-key", false, true},
    Prefixed{"rk_live_", ShapeFinder::Chars::kAlnum, 16, 0, "stripe-key", false, true},
    Prefixed{"rk_test_", ShapeFinder::Chars::kAlnum, 16, 0, "stripe-key", false, true},
    Prefixed{"whsec_", ShapeFinder::Chars::kAlnum, 24, 0, "stripe-key"},
    Prefixed{"npm_", ShapeFinder::Chars::kAlnum, 36, 36, "npm-token"},
    Prefixed{"pypi-", ShapeFinder::Chars::kToken, 60, 0, "pypi-token"},
    Prefixed{"dop_v1_", ShapeFinder::Chars::kHex, 64, 64, "digitalocean-token"},
    Prefixed{"shpat_", ShapeFinder::Chars::kHex, 32, 32, "shopify-token"},
    Prefixed{"shpss_", ShapeFinder::Chars::kHex, 32, 32, "shopify-token"},
    Prefixed{"sq0atp-", ShapeFinder::Chars::kToken, 22, 0, "square-token"},
    Prefixed{"sq0csp-", ShapeFinder::Chars::kToken, 40, 0, "square-token"},
    Prefixed{"lin_api_", ShapeFinder::Chars::kAlnum, 32, 0, "linear-key"},
    Prefixed{"ntn_", ShapeFinder::Chars::kAlnum, 40, 0, "notion-token"},
    Prefixed{"dapi", ShapeFinder::Chars::kHex, 32, 32, "databricks-token"},
    Prefixed{"key-", ShapeFinder::Chars::kHex, 32, 32, "mailgun-key"},
    Prefixed{"hvs.", ShapeFinder::Chars::kToken, 24, 0, "vault-token"},
    Prefixed{"AGE-SECRET-KEY-1", ShapeFinder::Chars::kUpperAlnum, 58, 58, "age-key"},
    Prefixed{"SK", ShapeFinder::Chars::kHex, 32, 32, "twilio-key"},
};

// The shapes with functions of their own are longer by far.
static_assert(std::all_of(kPrefixed.begin(), kPrefixed.end(), [](const Prefixed& shape) {
  return shape.prefix.size() + shape.min >= kMinShapeBytes;
}));

}  // namespace agentd::redact
