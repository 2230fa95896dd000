# SPDX-License-Identifier: Apache-2.0
# The library: every source under fungi/, one flag set per instruction set.
include(GNUInstallDirs)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebpdemux)
pkg_check_modules(TIFF REQUIRED IMPORTED_TARGET libtiff-4>=4.5)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
option(FUNGI_LEAN "Leave out the libraries that are too large for a wheel: AVIF, HEIC, HDF5, and what libarchive needs for other files than tar" OFF)
if(FUNGI_LEAN)  # the whole of libarchive wants libxml2 and ICU
  set_property(TARGET PkgConfig::ARCHIVE PROPERTY INTERFACE_LINK_LIBRARIES
    -Wl,--push-state,--as-needed -l:libarchive.a -lnettle -llzma -lzstd -l:liblz4.so.1 -lbz2 -lz -Wl,--pop-state)
endif()
# Linked, or in a lean build left out: then the one file that includes it is its stub. (All else in the command lines stays as it is, so
# that a compiler's cache serves both builds.)
function(fungi_large_library target definition source)
  if(FUNGI_LEAN)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/fungi/${source} APPEND PROPERTY COMPILE_OPTIONS -U${definition})
    target_compile_options(fungi PRIVATE $<TARGET_PROPERTY:${target},INTERFACE_COMPILE_OPTIONS>)
    target_include_directories(fungi SYSTEM PRIVATE $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
  else()
    target_link_libraries(fungi PRIVATE ${target})
  endif()
endfunction()
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
set_property(TARGET PkgConfig::UTF8PROC PROPERTY INTERFACE_COMPILE_OPTIONS)  # of Windows, for every source of ours
if(FUNGI_LEAN)  # the two routines that are used, out of the archives
  find_library(LAPACKE_LIBRARY liblapacke.a REQUIRED)
  find_library(LAPACK_ARCHIVE liblapack_pic.a REQUIRED)
  find_library(BLAS_ARCHIVE libblas.a PATH_SUFFIXES blas REQUIRED NO_CACHE)
  add_library(LAPACK::LAPACK INTERFACE IMPORTED)
  target_link_libraries(LAPACK::LAPACK INTERFACE ${LAPACK_ARCHIVE} ${BLAS_ARCHIVE} gfortran m)
else()
  find_package(LAPACK REQUIRED)
  find_library(LAPACKE_LIBRARY lapacke REQUIRED)
endif()

file(GLOB FUNGI_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fungi/*/*.cpp)
add_library(fungi ${FUNGI_SOURCES})
add_library(fungi::fungi ALIAS fungi)
target_compile_features(fungi PUBLIC cxx_std_20)
target_include_directories(fungi PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# Whatever processor a user compiles for: resizing, crops and sums have the bits of the references. (Tables say their own.)
target_compile_options(fungi PRIVATE -ffp-contract=off)
target_compile_definitions(fungi PRIVATE FUNGI_VERSION="${PROJECT_VERSION}")
# An installed library leaves it to its user's machine where lapacke is (fungi-config.cmake.in).
target_link_libraries(fungi PRIVATE fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> JPEG::JPEG PNG::PNG ZLIB::ZLIB
  PkgConfig::ZIP PkgConfig::WEBP PkgConfig::TIFF PkgConfig::ARCHIVE PkgConfig::UTF8PROC
  $<BUILD_INTERFACE:${LAPACKE_LIBRARY}> $<INSTALL_INTERFACE:fungi::lapacke>
  LAPACK::LAPACK Threads::Threads)

option(FUNGI_EMULATE_TILES "Compute AMX tiles by plain loops: every test as on a processor that has them (needs AVX512_BF16)" OFF)
if(FUNGI_EMULATE_TILES)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/fungi/kernel/amx.cpp ${PROJECT_SOURCE_DIR}/fungi/base/cpu.cpp
    APPEND PROPERTY COMPILE_DEFINITIONS FUNGI_EMULATE_TILES)
endif()

# Plain loops over whole rows, worth the vectors that every processor has.
set_source_files_properties(${PROJECT_SOURCE_DIR}/fungi/projection/dense.cpp ${PROJECT_SOURCE_DIR}/fungi/input/filter_bank.cpp
  ${PROJECT_SOURCE_DIR}/fungi/input/sound.cpp ${PROJECT_SOURCE_DIR}/fungi/input/resize.cpp ${PROJECT_SOURCE_DIR}/fungi/input/preprocess.cpp
  ${PROJECT_SOURCE_DIR}/fungi/view/colours.cpp ${PROJECT_SOURCE_DIR}/fungi/view/patches.cpp PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
