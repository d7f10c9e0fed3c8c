void hk_offence_block(void);
