# Toolchain of the preset aarch64: Debian's cross compiler, and the libraries that scripts/cross unpacks
# into the build directory. Programs that a build or ctest runs, run under qemu's user emulation.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;/usr/aarch64-linux-gnu)

get_filename_component(sbx_sysroot ${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/sysroot ABSOLUTE)
set(sbx_libraries ${sbx_sysroot}/usr/lib/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${sbx_sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
# Libraries that are headers alone are the same for every architecture: the host's serve.
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(CMAKE_CXX_FLAGS_INIT "-isystem ${sbx_sysroot}/usr/include/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT
  "-L${sbx_libraries} -Wl,-rpath-link,${sbx_libraries}:${sbx_sysroot}/lib/aarch64-linux-gnu")
set(ENV{PKG_CONFIG_LIBDIR} ${sbx_libraries}/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${sbx_sysroot})
