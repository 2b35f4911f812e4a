module agentd

go 1.26
