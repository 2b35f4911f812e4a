// Package skill finds skills, folders and files with instructions for particular
// tasks, and gives models an index of them, their text and their files when they ask.
//
// A skill is a folder with a SKILL.md, as https://agentskills.io has it, or a file
// NAME.skill.md. It promises: what is wrong with one is said with file and line and
// costs that skill alone; of two with the same name the first source has the say and
// the other is reported; the index is the same text for the same skills; files are
// read below a skill's own folder and nowhere else.
package skill
