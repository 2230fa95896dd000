# SPDX-License-Identifier: Apache-2.0
# libFuzzer programs, one per file of tests/fuzz/, for Clang: cmake -DCMAKE_CXX_COMPILER=clang++ -DFUNGI_FUZZ=ON.
# Only the rooms that parse files are compiled in, so that every line of them is instrumented. Run one on a folder of
# small real files: build-fuzz/fuzz_image -max_len=65536 -rss_limit_mb=4096 seeds/
option(FUNGI_FUZZ "Build the fuzz targets (Clang only)" OFF)
if(FUNGI_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FUNGI_FUZZ needs Clang: configure with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  file(GLOB FUNGI_FUZZ_ROOMS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fungi/base/*.cpp
       ${PROJECT_SOURCE_DIR}/fungi/checkpoint/*.cpp ${PROJECT_SOURCE_DIR}/fungi/input/*.cpp
       ${PROJECT_SOURCE_DIR}/fungi/token/*.cpp ${PROJECT_SOURCE_DIR}/fungi/hub/*.cpp
       ${PROJECT_SOURCE_DIR}/fungi/service/parse.cpp ${PROJECT_SOURCE_DIR}/fungi/service/multipart.cpp)
  add_library(fungi-fuzz OBJECT ${FUNGI_FUZZ_ROOMS})
  target_include_directories(fungi-fuzz PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(fungi-fuzz PUBLIC -g -O1 -fsanitize=fuzzer-no-link,address,undefined
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_libraries(fungi-fuzz PUBLIC fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB PkgConfig::ZIP
                        JPEG::JPEG PNG::PNG PkgConfig::WEBP PkgConfig::TIFF PkgConfig::ARCHIVE PkgConfig::UTF8PROC Threads::Threads)
  foreach(option AVIF HEIF SNDFILE SOXR KISSFFT)
    if(FUNGI_${option})
      target_link_libraries(fungi-fuzz PUBLIC PkgConfig::${option})
      target_compile_definitions(fungi-fuzz PUBLIC FUNGI_HAVE_${option})
    endif()
  endforeach()
  target_compile_definitions(fungi-fuzz PUBLIC FUNGI_VERSION="${PROJECT_VERSION}")
  if(FUNGI_CURL)
    target_link_libraries(fungi-fuzz PUBLIC PkgConfig::CURL)
  endif()
  if(FUNGI_MATIO)
    target_link_libraries(fungi-fuzz PUBLIC ${MATIO_LINK_LIBRARIES})
    target_compile_definitions(fungi-fuzz PUBLIC FUNGI_HAVE_MATIO)
  endif()
  if(FUNGI_SENTENCEPIECE)
    target_link_libraries(fungi-fuzz PUBLIC PkgConfig::SENTENCEPIECE)
  endif()
  file(GLOB targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.cpp)
  foreach(source ${targets})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE fungi-fuzz)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  endforeach()
endif()
