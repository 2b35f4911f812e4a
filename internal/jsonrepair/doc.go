// Package jsonrepair makes a JSON object of what a model wrote as one.
//
// [Object] always returns a valid JSON object. A valid one is returned as it is;
// else raw control characters, bad escapes, lone surrogates, invalid UTF-8 and
// stray commas are repaired; else what was cut off is completed: strings, arrays
// and objects are closed, a key without a value is dropped. When nothing can be
// saved the answer is {}. Nothing is ever invented except the closing marks, and
// a member that came through whole is never changed.
package jsonrepair
