// Questions of the kind the embedded models were trained for, taken from the
// set they never saw. A single answer of the default model gets the first
// three right and the last one wrong: that one is for a beam search.

/** @type {{ label: string, text: string }[]} */
export const examples = [
  {
    label: 'Three steps',
    text: 'There are 163 big seeds and 57 small seeds. They are shared equally among 5 children. Each of them already had 29 seeds. How many seeds does each of the children have now?',
  },
  {
    label: 'Four steps',
    text: 'Ben owns 277 photos. Next, he picks up 229 photos. Ben has 16 cousins. Next, he gets 9 jars of 38 photos. A jar holds 4 photos. How many jars does he need?',
  },
  {
    label: 'Five steps',
    text: 'Lena reads 10 pages every day. She reads for 7 days and then 4 more days. After that 40 pages are gone. There were already 297 pages before that. Then 296 pages are taken away. How many pages is that in total?',
  },
  {
    label: 'A hard one: try a beam search',
    text: 'Susan owns 241 beads. Next, the number of beads doubles. She sells half of them. Later she doubles the number of beads. Susan wants to have 595 beads. How many more does she need?',
  },
];
