// Package gemini is the adapter for models behind Google's Gemini API
// (generateContent), over net/http: the official SDK hides the headers of errors and
// what ends a stream.
//
// Beyond the promises of package model:
//
//   - thought signatures go back on the part they came with, byte for byte, to the model
//     that made them. Gemini 3 and later refuse a call without one, so the first call of
//     a step that another model made carries the word that Google documents for it;
//   - the API takes no name of a tool that begins with a digit or a dash: it is sent, and
//     comes back, with an underscore ahead of it;
//   - ids of calls are sent to models that know them (Gemini 3 and later); older ones match
//     results by their order;
//   - images in results are parts of the result for Gemini 3 and later, and follow in a
//     message of their own for older models;
//   - the API takes five stop texts: others end the text here;
//   - a stream is complete when a finishReason came. A prompt that was blocked is an
//     error of class refused;
//   - the API has no switch for one call at a time: Request.SingleToolCall is not sent.
//     Neither are temperature and top_p to models that ignore or refuse them.
//
// Wire format: https://ai.google.dev/api/generate-content and
// https://ai.google.dev/gemini-api/docs/thought-signatures, and the types of
// google.golang.org/genai v1.77.0.
package gemini
