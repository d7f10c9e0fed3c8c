/* A module that has no place in the order. */
void hk_offence_strange(void);
void hk_offence_strange(void)
{
}
