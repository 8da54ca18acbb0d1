# What the library and the generator both are made of: no generated file among them.
set(SBX_POLICY_TEXT_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/limits.cc
  ${CMAKE_CURRENT_LIST_DIR}/quantity.cc
  ${CMAKE_CURRENT_LIST_DIR}/seccomp_constants.cc
  ${CMAKE_CURRENT_LIST_DIR}/seccomp_rules.cc
  ${CMAKE_CURRENT_LIST_DIR}/seccomp_compile.cc
  ${CMAKE_CURRENT_LIST_DIR}/seccomp_program.cc
  ${CMAKE_CURRENT_LIST_DIR}/profile.cc
  ${CMAKE_CURRENT_LIST_DIR}/language_file.cc)
set(SBX_POLICYC_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/generate/main.cc
  ${CMAKE_CURRENT_LIST_DIR}/generate/emit.cc)
