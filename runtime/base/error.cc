#include <cerrno>
#include <cstring>

#include "runtime/base/result.h"

namespace sbx {

std::string to_string(const Error& error) {
  std::string text;
  const auto append = [&text](const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += ": ";
    text += part;
  };
  append(error.stage);
  append(error.operation);
  append(error.detail);
  if (error.sys_errno != 0) append(std::strerror(error.sys_errno));
  return text;
}

Error invalid(std::string detail, std::string fix) {
  Error error;
  error.code = ErrorCode::kInvalid;
  error.detail = std::move(detail);
  error.fix = std::move(fix);
  return error;
}

Error host_lacks(std::string operation, int sys_errno, std::string detail, std::string fix) {
  Error error;
  error.code = ErrorCode::kHost;
  error.operation = std::move(operation);
  error.sys_errno = sys_errno;
  error.detail = std::move(detail);
  error.fix = std::move(fix);
  return error;
}

Error sys_error(std::string operation, std::string detail) {
  const int saved = errno;
  Error error;
  error.code = ErrorCode::kInternal;
  error.operation = std::move(operation);
  error.sys_errno = saved;
  error.detail = std::move(detail);
  return error;
}

}  // namespace sbx
