-- Open interrupts that end by themselves are looked for when a process starts.
CREATE INDEX interrupts_expiring ON interrupts (expires) WHERE status = 'open' AND expires > 0;
