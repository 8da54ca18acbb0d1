# What others build against: <sbx/sandbox.h>, libsbx.a and a package for find_package(sbx), which gives
# the target sbx::sandbox. Programs install themselves where they are made, but for sbx-scope.
include(CMakePackageConfigHelpers)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(SBX_PUBLIC_HEADER ${CMAKE_BINARY_DIR}/generated/include/sbx/sandbox.h)
set(sbx_amalgamate ${CMAKE_SOURCE_DIR}/cmake/amalgamate.py)
add_custom_command(OUTPUT ${SBX_PUBLIC_HEADER}
  COMMAND ${Python3_EXECUTABLE} ${sbx_amalgamate} --root ${CMAKE_SOURCE_DIR} --entry runtime/sandbox.h
    --out ${SBX_PUBLIC_HEADER} --depfile ${SBX_PUBLIC_HEADER}.d
  DEPENDS ${sbx_amalgamate} DEPFILE ${SBX_PUBLIC_HEADER}.d
  COMMENT "Making <sbx/sandbox.h>" VERBATIM)
add_custom_target(sbx_public_header ALL DEPENDS ${SBX_PUBLIC_HEADER})

# One archive of all stages, so that nobody has to know them or their order. libcrypto and libseccomp
# stay outside: they are the user's system's.
set(sbx_objects "")
foreach(library base fmt policy_text policy cgroup plan child spawn supervise collect workspace init_image sandbox)
  list(APPEND sbx_objects $<TARGET_OBJECTS:sbx_${library}>)
endforeach()
add_library(sbx_bundle STATIC ${sbx_objects})
set_target_properties(sbx_bundle PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME sbx EXPORT_NAME sandbox)
target_compile_features(sbx_bundle INTERFACE cxx_std_20)
target_include_directories(sbx_bundle INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(sbx_package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/sbx)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/sbxConfig.cmake.in
  ${CMAKE_BINARY_DIR}/generated/sbxConfig.cmake INSTALL_DESTINATION ${sbx_package_directory})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/sbxConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)

install(TARGETS sbx_bundle EXPORT sbxTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT sbxTargets NAMESPACE sbx:: DESTINATION ${sbx_package_directory})
install(FILES ${CMAKE_BINARY_DIR}/generated/sbxConfig.cmake
  ${CMAKE_BINARY_DIR}/generated/sbxConfigVersion.cmake DESTINATION ${sbx_package_directory})
install(FILES ${SBX_PUBLIC_HEADER} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sbx)
# Beside sbx-run in a build tree; installed, where sbx-run and embedding programs look for it.
install(TARGETS sbx-scope RUNTIME DESTINATION libexec/sbx)
