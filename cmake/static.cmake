# SPDX-License-Identifier: Apache-2.0
# The program as one file that needs no library: target `static`.
# It is not installed, but handed out as it is.

set(static_libraries)
foreach(name yaml yajl_s expat z zstd)
  find_library(STATIC_${name} lib${name}.a)
  list(APPEND static_libraries ${STATIC_${name}})
endforeach()
if(static_libraries MATCHES NOTFOUND)
  message(STATUS "No static program: a library lacks its static form")
  return()
endif()
set(name stepcast-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
add_executable(static ${program} cmake/static.c)
target_include_directories(static PRIVATE src include ${generated})
if(SQLITE_FOUND)
  target_compile_definitions(static PRIVATE STEPCAST_SQLITE)
  target_include_directories(static SYSTEM PRIVATE ${SQLITE_INCLUDE_DIRS})
endif()
target_link_libraries(static PRIVATE $<TARGET_FILE:stepcast_lib>
                      ${static_libraries} m)
add_dependencies(static stepcast_lib)
target_link_options(static PRIVATE -static -s)
foreach(function dlopen dlsym dlclose dlerror)
  target_link_options(static PRIVATE -Wl,--wrap=${function})
endforeach()
set_target_properties(static PROPERTIES OUTPUT_NAME ${name}
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/installed)
