// Package check looks for what is wrong with a store: broken conversations, runs whose
// row, state and events do not agree, rows without owner, sums that are too low. It
// speaks the SQL that SQLite and PostgreSQL have in common, so that both are held
// against the same invariants.
package check
