#!/bin/sh
# Run once by the image of PostgreSQL, when its volume is empty: users and databases of agentd and Temporal. Temporal's
# user makes its databases itself (temporal, temporal_visibility).
set -eu
agentd=$(cat /run/secrets/agentd_password)
temporal=$(cat /run/secrets/temporal_password)
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<SQL
CREATE ROLE agentd LOGIN PASSWORD '$agentd';
CREATE DATABASE agentd OWNER agentd;
CREATE ROLE temporal LOGIN CREATEDB PASSWORD '$temporal';
SQL
