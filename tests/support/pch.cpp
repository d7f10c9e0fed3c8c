// The program whose compiled headers the tests take: a library's would be compiled with other options.
int main()
{
}
