# find_package(qwyc) gives qwyc::qwyc, the shared library, and qwyc::static. A C project that links
# the static one must enable the language CXX.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/qwycTargets.cmake")
