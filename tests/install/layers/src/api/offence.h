void hk_offence_high(void);
