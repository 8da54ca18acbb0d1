#include "agentd/providers/provider.h"

namespace agentd::providers {

std::string_view to_string(Trouble trouble) {
  switch (trouble) {
    case Trouble::kUnreachable:
      return "unreachable";
    case Trouble::kOverloaded:
      return "overloaded";
    case Trouble::kKeyRefused:
      return "key_refused";
    case Trouble::kModelUnknown:
      return "model_unknown";
    case Trouble::kTooLarge:
      return "too_large";
    case Trouble::kRefused:
      return "refused";
    case Trouble::kMalformed:
      return "malformed";
    case Trouble::kTimeout:
      return "timeout";
    case Trouble::kNoRecording:
      return "no_recording";
    case Trouble::kCancelled:
      return "cancelled";
  }
  return {};
}

}  // namespace agentd::providers
