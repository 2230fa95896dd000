# SPDX-License-Identifier: Apache-2.0
# The Python module: fungi._fungi, linked with the library of this build, and its Python files beside it in <build>/python.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
if(NOT nanobind_DIR)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_DIR
    COMMAND_ERROR_IS_FATAL ANY)
endif()
find_package(nanobind CONFIG REQUIRED)
file(GLOB FUNGI_PYTHON_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/*.cpp)
nanobind_add_module(fungi-python STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS ${FUNGI_PYTHON_SOURCES})
set_target_properties(fungi-python PROPERTIES OUTPUT_NAME _fungi LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/fungi)
target_include_directories(fungi-python PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(fungi-python PRIVATE FUNGI_VERSION="${PROJECT_VERSION}")
target_link_libraries(fungi-python PRIVATE fungi::fungi fmt::fmt nlohmann_json::nlohmann_json)
target_compile_options(fungi-python PRIVATE -Wno-shadow)
foreach(theirs nanobind-static nanobind-static-abi3)  # the second from Python 3.12
  if(TARGET ${theirs})
    target_compile_options(${theirs} PRIVATE -w)
  endif()
endforeach()
target_link_options(fungi-python PRIVATE -Wl,--exclude-libs,ALL)

# The files beside it are the ones of the source tree.
file(GLOB FUNGI_PYTHON_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/fungi/*.py* ${PROJECT_SOURCE_DIR}/python/fungi/py.typed)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python/fungi)
foreach(file ${FUNGI_PYTHON_FILES})
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${PROJECT_BINARY_DIR}/python/fungi/${name} SYMBOLIC)
endforeach()

# In a wheel the command lies beside the module.
if(SKBUILD)
  install(TARGETS fungi-python LIBRARY DESTINATION fungi COMPONENT python)
  install(PROGRAMS $<TARGET_FILE:fungi-cli> DESTINATION fungi/bin COMPONENT python)
endif()
