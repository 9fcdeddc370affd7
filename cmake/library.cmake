# libqwyc: reads `.qwyc` files and decides rows, without Python. docs/library.md says how to use it.
file(STRINGS include/qwyc.h abi_line REGEX "^#define QWYC_ABI_VERSION ")
string(REGEX REPLACE "^#define QWYC_ABI_VERSION " "" QWYC_ABI_VERSION "${abi_line}")

add_library(qwyc_capi OBJECT
  native/capi/categories.cpp
  native/capi/evaluator.cpp
  native/capi/functions.cpp
  native/capi/model.cpp
  native/capi/outputs.cpp
  native/files/certificate.cpp
  native/files/container.cpp
  native/files/digest.cpp
  native/files/json.cpp
  native/files/model.cpp
  native/files/policy.cpp
  native/files/schema.cpp
  native/files/sha256.cpp
  native/files/tensors.cpp
  native/files/values.cpp)
target_include_directories(qwyc_capi PUBLIC include)
target_link_libraries(qwyc_capi PUBLIC qwyc_core)
target_compile_definitions(qwyc_capi PRIVATE
  QWYC_BUILDING_LIBRARY QWYC_LIBRARY_VERSION="${QWYC_VERSION}")
set_target_properties(qwyc_capi PROPERTIES POSITION_INDEPENDENT_CODE ON
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

if(QWYC_LIBRARY)
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)

  # Only qwyc_* is visible, not what the compiler makes of the standard library's templates.
  add_library(qwyc SHARED $<TARGET_OBJECTS:qwyc_capi>)
  target_link_libraries(qwyc PRIVATE $<BUILD_INTERFACE:qwyc_core>)
  if(NOT APPLE AND NOT WIN32)
    set(exported "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exported.map")
    target_link_options(qwyc PRIVATE "LINKER:--version-script=${exported}")
    set_target_properties(qwyc PROPERTIES LINK_DEPENDS "${exported}")
  endif()
  set_target_properties(qwyc PROPERTIES SOVERSION ${QWYC_ABI_VERSION}
    VERSION ${QWYC_ABI_VERSION}.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

  # What is fitted is left out: the library evaluates only.
  add_library(qwyc_static STATIC $<TARGET_OBJECTS:qwyc_capi>
    $<FILTER:$<TARGET_OBJECTS:qwyc_core>,EXCLUDE,/native/fit/>)
  target_link_libraries(qwyc_static PRIVATE Threads::Threads)
  set_target_properties(qwyc_static PROPERTIES OUTPUT_NAME qwyc EXPORT_NAME static
    LINKER_LANGUAGE CXX)

  foreach(target qwyc qwyc_static)
    target_include_directories(${target} INTERFACE
      $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  endforeach()

  configure_file(cmake/qwyc.pc.in qwyc.pc @ONLY)
  write_basic_package_version_file(qwycConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(TARGETS qwyc qwyc_static EXPORT qwycTargets)
  install(FILES include/qwyc.h TYPE INCLUDE)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/qwyc.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  install(EXPORT qwycTargets NAMESPACE qwyc:: DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/qwyc")
  install(FILES cmake/qwycConfig.cmake "${CMAKE_CURRENT_BINARY_DIR}/qwycConfigVersion.cmake"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/qwyc")
endif()
