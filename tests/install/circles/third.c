/* hko_first() is named in a comment, and "hko_second" in a text. */
const char *hko_third(void);
const char *hko_third(void)
{
    return "hko_second";
}
