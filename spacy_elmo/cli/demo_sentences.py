"""Sentences with ambiguous words, written for the demo.

A heading names a word and one of its senses; each line below it is a sentence that holds the
word once, in exactly this form. All of them count in the demo's summary, and all were written
before any model had read them: to choose among them by what it makes of them would be to cheat.
"""

# All their senses are nouns, so that only what the sentence is about tells them apart.
NOUNS = ("bank", "spring", "seal", "club", "letter", "crane", "plant")

SENTENCES = """
# bank: money
The bank refused to lend him the money for a second house.
She opened an account at a bank near the station.
After the crisis the government had to rescue the largest bank in the country.
My uncle worked as a clerk in a bank for thirty years.
Two men robbed the bank on Friday and fled in a stolen car.

# bank: river
We sat on the bank and watched the boats go down the river.
The village lies on the left bank of the Rhine.
A heron stood motionless near the muddy bank of the stream.
He swam across and climbed up the opposite bank.
Willows grow along the bank where the canal meets the lake.

# play: theatre
The play was first performed in London in 1895.
She wrote a play about her grandmother's escape from the city.
In the second act of the play the king learns the truth.
Critics praised the play for its sharp dialogue.

# play: sport
Both teams will play on Saturday in the new stadium.
He was too injured to play in the final.
She began to play tennis at the age of six.
The club will play its next game against Arsenal.

# play: music
He learned to play the violin from his father.
The band will play two songs from the new album.
I can play the piano, but not very well.
She asked the orchestra to play the last movement again.

# stick: wood
The old man leaned on his stick as he climbed the stairs.
The dog ran after the stick and brought it back.
He drew a circle in the sand with a stick.
She poked the fire with a long stick.

# stick: adhere
Let us stick to the plan we agreed on.
The wet leaves stick to my boots.
If you stick with the same team, you may win one day.
Politicians rarely stick to what they promised.

# bat: animal
A bat flew out of the cave at dusk.
The bat hangs upside down and sleeps through the day.
This species of bat feeds on insects and fruit.
We saw a small brown bat under the roof of the barn.

# bat: sport
He hit the ball so hard that his bat broke.
The captain chose to bat first after winning the toss.
She swung the bat and missed the third pitch.
The batter dropped his bat and ran to first base.

# spring: season
In spring the fields are covered with yellow flowers.
The school opened in the spring of 1962.
After a long winter, spring came late that year.
The birds return every spring to build their nests.

# spring: water
The monks drank from a spring at the foot of the hill.
Hot water rises from the spring and fills a small pool.
The river begins as a spring high in the mountains.
They built a chapel over the sacred spring.

# spring: coil
The clock stopped because its spring was broken.
A steel spring pushes the door shut.
He replaced the rusty spring in the lock.
When the lever is pressed, the spring is released.

# match: game
They lost the match by two goals to one.
The match was played in front of forty thousand fans.
He scored twice in his first match for the national team.
Rain delayed the match for more than an hour.

# match: fire
He struck a match and lit the candle.
She dropped a burning match on the dry grass.
There was only one match left in the box.
A single match can start a forest fire.

# match: fit
The curtains match the colour of the carpet.
His words do not match his actions.
The numbers must match those in the report.
These shoes do not match your coat.

# light: brightness
The light from the window fell on her face.
Plants need water and light to grow.
She turned on the light and looked around the room.
The light of the moon was reflected in the lake.

# light: not heavy
The box was so light that a child could carry it.
He wore a light jacket over his shirt.
The boat is built of light wood and moves quickly.
We had a light lunch before the walk.

# bark: tree
The bark of the old oak was rough and grey.
Deer had stripped the bark from the young trees.
They made canoes from the bark of birch trees.
Beetles live beneath the bark and feed on the wood.

# bark: dog
The neighbour's dogs bark at every stranger.
I heard the dog bark twice in the night.
He was woken by the loud bark of a guard dog.
A fox can bark almost like a small dog.

# seal: animal
A grey seal was sleeping on the rocks.
The seal dived and came up with a fish.
Hunters on the ice killed the seal for its fur.
We watched a young seal swim around the boat.

# seal: stamp
The letter bore the seal of the king.
The document was not valid without the official seal.
He pressed his ring into the wax to make a seal.
The state seal shows an eagle and a shield.

# club: society
She joined a chess club at the university.
The club has more than two thousand members.
He was elected president of the club in 1920.
Our book club meets on the first Monday of the month.

# club: weapon
The giant carried a heavy wooden club.
He was struck on the head with a club.
The caveman raised his club and shouted.
The guard was armed with a knife and a club.

# letter: mail
I received a letter from my sister yesterday.
He wrote a long letter to the president.
She folded the letter and put it in an envelope.
The letter was sent from Paris in March.

# letter: alphabet
The word begins with a capital letter.
In this alphabet each letter stands for one sound.
The last letter of the Greek alphabet is omega.
A silent letter is written but not pronounced.

# crane: machine
The crane lifted the steel beams onto the roof.
A crane collapsed at the building site and injured two workers.
Containers are moved from the ship by a large crane.
The driver of the crane sits in a small cabin.

# crane: bird
The crane builds its nest in wet meadows.
A white crane stood in the shallow water.
The crane is a symbol of long life in Japan.
We saw a crane fly over the marsh at dawn.

# fair: just
The judge gave both sides a fair hearing.
It is not fair that she has to pay for his mistake.
Workers demanded fair wages and shorter hours.
Everyone agreed that the decision was fair.

# fair: market
The fair is held in the town every August.
Farmers sold their cattle at the annual fair.
We rode the big wheel at the fair.
Thousands of visitors came to the book fair in Leipzig.

# plant: factory
The plant produces two hundred cars a day.
Workers at the chemical plant went on strike.
A new power plant was built near the coast.
The company closed its steel plant in 1984.

# plant: flora
The plant has small white flowers and broad leaves.
This plant grows well in dry soil.
She watered the plant on the kitchen table.
The roots of the plant are used in medicine.
"""


def read_sentences(text: str = SENTENCES) -> list[tuple[str, str, str]]:
    """The sentences as ``(word, sense, sentence)``."""
    found = []
    word = sense = ""
    for line in filter(None, text.splitlines()):
        if line.startswith("# "):
            word, sense = line[2:].split(": ")
        else:
            found.append((word, sense, line))
    return found
