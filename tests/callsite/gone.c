/* A library that is unloaded while its names are looked up. */
int callsite_gone(int x);

int callsite_gone(int x)
{
    return x + 1;
}
