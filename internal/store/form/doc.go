// Package form holds the stored forms that implementations of the store share:
// packed values, journals, cursors, and what is checked of a Tx before any of them
// looks at it. What one of them wrote the other reads, so that a store can be copied
// row by row. A form that was ever written is read for good.
package form
