// Nothing: CMake wants a program to precompile headers for.
int main() {}
