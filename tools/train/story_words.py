"""Words of the long stories: names, things, what holds them, days."""

MALE = ("Tom Ben Sam Max Leo Jack Adam Paul Omar Luke Noah Liam Ryan Eric Ivan Hugo Carl Finn Owen Alan Dan Kevin "
        "Peter David James Henry Oscar Felix Victor Simon Marco Ali Raj Chen Diego Kofi Yuki Lars Theo Nick Bob John "
        "Mike Alex Tim Jim Joe Fred Greg Aaron").split()
FEMALE = ("Mia Anna Lily Emma Sara Lucy Nina Zoe Eva Amy Ruth Jane Kate Rosa Ella Ivy Ada Lena Olga Tara Maya Nora Iris "
          "Julia Laura Alice Clara Hanna Sofia Maria Grace Chloe Diana Elena Fatima Aisha Mei Priya Ines Greta Mary "
          "Linda Susan Kim Jill Beth Rachel Carol Wendy Tina").split()
# plural and singular
OBJ = [("apples", "apple"), ("pears", "pear"), ("oranges", "orange"), ("lemons", "lemon"), ("plums", "plum"), ("peaches", "peach"),
       ("cookies", "cookie"), ("candies", "candy"), ("muffins", "muffin"), ("cupcakes", "cupcake"), ("eggs", "egg"), ("nuts", "nut"),
       ("marbles", "marble"), ("stickers", "sticker"), ("stamps", "stamp"), ("coins", "coin"), ("cards", "card"), ("beads", "bead"),
       ("shells", "shell"), ("buttons", "button"), ("pencils", "pencil"), ("pens", "pen"), ("crayons", "crayon"), ("books", "book"),
       ("toys", "toy"), ("balloons", "balloon"), ("blocks", "block"), ("rocks", "rock"), ("flowers", "flower"), ("roses", "rose"),
       ("tomatoes", "tomato"), ("carrots", "carrot"), ("potatoes", "potato"), ("onions", "onion"), ("bottles", "bottle"), ("cups", "cup"),
       ("plates", "plate"), ("tickets", "ticket"), ("photos", "photo"), ("postcards", "postcard"), ("ribbons", "ribbon"), ("candles", "candle"),
       ("seeds", "seed"), ("bricks", "brick"), ("nails", "nail"), ("magnets", "magnet"), ("badges", "badge"), ("keys", "key")]
SHOP = [("pens", "pen"), ("books", "book"), ("notebooks", "notebook"), ("shirts", "shirt"), ("hats", "hat"), ("toys", "toy"), ("cakes", "cake"),
        ("lamps", "lamp"), ("bags", "bag"), ("tickets", "ticket"), ("balls", "ball"), ("games", "game"), ("plants", "plant"), ("mugs", "mug"),
        ("pizzas", "pizza"), ("socks", "sock"), ("belts", "belt"), ("chairs", "chair"), ("rulers", "ruler"), ("brushes", "brush")]
BOX = [("bags", "bag"), ("boxes", "box"), ("packs", "pack"), ("baskets", "basket"), ("jars", "jar"), ("trays", "tray"), ("crates", "crate")]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
