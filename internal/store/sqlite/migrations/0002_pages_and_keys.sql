-- Lists of interrupts are read page by page, in the order of their keys.
CREATE INDEX interrupts_tenant ON interrupts (tenant);
