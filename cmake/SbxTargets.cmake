# Flags that every target of ours gets, and the functions that make libraries and tests.

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

add_library(sbx_flags INTERFACE)
target_include_directories(sbx_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_options(sbx_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Werror
  # GCC 12 sees overlaps and overruns in std::string's operator+ that are not there (PR105651, PR105329).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>
  # A type of an unnamed namespace is as local in a batch of sources as in one; GCC goes by the main file.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
  # clang 19 warns of what libstdc++ 12's own stable_sort uses.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  -fstack-protector-strong -fno-omit-frame-pointer
  $<$<AND:$<CONFIG:Release>,$<NOT:$<BOOL:$<TARGET_PROPERTY:SBX_UNOPTIMISED>>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>)
target_compile_definitions(sbx_flags INTERFACE _GNU_SOURCE)
target_link_options(sbx_flags INTERFACE -Wl,-z,relro,-z,now)
if(SBX_SANITIZE)
  target_compile_options(sbx_flags INTERFACE -fsanitize=${SBX_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(sbx_flags INTERFACE -fsanitize=${SBX_SANITIZE})
endif()
if(SBX_FUZZ)
  # Coverage in all that an entry calls; the entries alone link libFuzzer (tests/fuzz/CMakeLists.txt).
  target_compile_options(sbx_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The standard headers that nearly every file includes, compiled once. Only a build-time saving: each
# file still includes what it uses.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/sbx_pch.cc CONTENT "")
add_library(sbx_pch STATIC ${CMAKE_BINARY_DIR}/generated/sbx_pch.cc)
target_link_libraries(sbx_pch PUBLIC sbx_flags)
target_precompile_headers(sbx_pch PRIVATE
  <algorithm> <array> <chrono> <cstdint> <cstring> <functional> <memory> <optional> <span> <string>
  <string_view> <utility> <variant> <vector>)

# sbx_library(name SOURCES … DEPENDS …): a static library of one stage.
function(sbx_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC sbx_flags ${ARG_DEPENDS})
  target_precompile_headers(${name} REUSE_FROM sbx_pch)
endfunction()

# sbx_self_contained(program…): the C++ library is in them. A daemon serves each request with cold caches, after the
# programs that ran in the sandbox: what its code calls across shared libraries is 7% of agentd's part of one.
function(sbx_self_contained)
  if(SBX_SANITIZE)
    return()
  endif()
  foreach(program ${ARGN})
    target_link_options(${program} PRIVATE -static-libstdc++ -static-libgcc)
  endforeach()
endfunction()

# Tests get on top the headers that cost them more than all the others. What they test is optimised; they
# themselves are not: that halves their part of a build.
find_package(GTest REQUIRED)
find_package(nlohmann_json REQUIRED)
function(sbx_unoptimised)
  set_target_properties(${ARGN} PROPERTIES SBX_UNOPTIMISED ON)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE -O0)
    if(SBX_FUZZ)
      # Nothing steers by a test's own coverage, and counting it takes a test several times as long.
      target_compile_options(${target} PRIVATE -fno-sanitize=fuzzer-no-link)
    endif()
  endforeach()
endfunction()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/sbx_test_pch.cc CONTENT "")
add_library(sbx_test_pch STATIC ${CMAKE_BINARY_DIR}/generated/sbx_test_pch.cc)
target_link_libraries(sbx_test_pch PUBLIC sbx_flags GTest::gmock GTest::gtest nlohmann_json::nlohmann_json)
add_library(sbx_test_main STATIC ${CMAKE_SOURCE_DIR}/tests/support/test_main.cc)
target_link_libraries(sbx_test_main PUBLIC sbx_flags GTest::gmock GTest::gtest)
target_precompile_headers(sbx_test_main REUSE_FROM sbx_test_pch)
sbx_unoptimised(sbx_test_pch sbx_test_main)
target_precompile_headers(sbx_test_pch PRIVATE
  <algorithm> <array> <chrono> <cstdint> <cstring> <functional> <memory> <optional> <span> <string>
  <string_view> <utility> <variant> <vector> <filesystem> <gmock/gmock.h> <gtest/gtest.h>
  <nlohmann/json.hpp>)

# sbx_counts_sandboxes(test…): tests that start sandboxes on this host, or count all that are left of any:
# ctest -j runs one of them at a time.
function(sbx_counts_sandboxes)
  set_tests_properties(${ARGN} PROPERTIES RESOURCE_LOCK sandboxes)
endfunction()

# sbx_test(name SOURCES … DEPENDS … [TIMEOUT s] [LABELS …]): one GoogleTest program, one ctest entry.
function(sbx_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(SBX_SANITIZE)
    math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE sbx_flags ${ARG_DEPENDS} GTest::gmock GTest::gtest sbx_test_main)
  # glibc's fortified headers warn through a (void) cast; in tests what is ignored is checked otherwise.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-unused-result>)
  sbx_unoptimised(${name})
  target_precompile_headers(${name} REUSE_FROM sbx_test_pch)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
    SKIP_RETURN_CODE 77)
endfunction()
